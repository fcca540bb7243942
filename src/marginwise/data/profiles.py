"""Profiles of columns: the kind, moments, categories or terms of the rows seen so far.

Profiles process a column in chunks. Apart from rounding, the result does not depend on the chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from marginwise.data.columns import CellError, Column, Strings, Vectors, need_arrow
from marginwise.data.number_profile import FEW_ROWS, NumberProfile
from marginwise.data.readings import Readings

WORDS = 1.5  # strings with more words on average are text
MOST_TERMS = 100_000  # maximum number of terms of a text column; the most frequent are kept


class TermCounts:
    """Document frequencies of terms; rare terms are dropped if there are too many terms."""

    def __init__(self) -> None:
        self._analyze = TfidfVectorizer().build_analyzer()
        self._counts: Counter[str] = Counter()
        self.documents = self.occurrences = 0

    def add(self, documents: Iterable[tuple[str, int]]) -> None:
        """Count the terms of documents, given as pairs of a document and its frequency."""
        for document, times in documents:
            terms = set(self._analyze(document))
            self.documents += times
            self.occurrences += times * len(terms)
            if times == 1:
                self._counts.update(terms)
            else:
                self._counts.update(dict.fromkeys(terms, times))
        if len(self._counts) > 8 * MOST_TERMS:
            self._counts = Counter(dict(self._most_frequent(4 * MOST_TERMS)))

    def _most_frequent(self, n: int) -> list[tuple[str, int]]:
        """Return the most frequent terms and their counts; ties are resolved alphabetically."""
        return sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:n]

    def vectorizer(self) -> TfidfVectorizer | None:
        """Return a vectorizer that is fitted to the documents; None if they have no terms."""
        kept = dict(sorted(self._most_frequent(MOST_TERMS)))
        if not kept:
            return None
        made = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        made.fit([next(iter(kept))])  # sets attributes that depend on the version of scikit-learn
        made.vocabulary_ = {term: place for place, term in enumerate(kept)}
        made._tfidf.fit(sp.csr_array((1, len(kept)), dtype=np.float32))
        counts = np.array(list(kept.values()), dtype=np.float64)
        made._tfidf.idf_ = np.log((1 + self.documents) / (1 + counts)) + 1
        return made


class StringProfile:
    """Categories or terms of strings, and their values if they can be parsed.

    Parameters
    ----------
    most : int or None
        Maximum number of categories; None for any number.
    readings : Readings, default=None
        Readings of the strings as other kinds, if they should be parsed.
    as_text : bool, default=False
        Whether the column is declared as text.
    """

    family = "string"

    def __init__(
        self, most: int | None, readings: Readings | None = None, as_text: bool = False
    ) -> None:
        self._most, self._as_text = most, as_text
        self.rows = self.missing = 0
        self.counts: dict[str, int] | None = {}
        self.terms: TermCounts | None = None
        self.readings = readings

    def update(self, column: Column, name: str) -> None:
        """Take more rows into account."""
        assert isinstance(column, Strings)
        strings = column.values
        if self.readings is not None:
            self.readings.update(strings, name)
        self._count(strings)
        self.rows += len(strings)
        self.missing += strings.null_count

    def skip(self, rows: int) -> None:
        """Take rows without values into account."""
        self.rows += rows
        self.missing += rows
        if self.readings is not None:
            self.readings.skip(rows)

    def _count(self, strings: Any) -> None:
        """Count categories or, once there are too many of them, terms."""
        pc = need_arrow().compute
        if self.counts is None and self.terms is None:
            return
        counted = pc.value_counts(strings.drop_null())
        pairs = zip(
            counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True
        )
        if self.counts is None:
            assert self.terms is not None
            self.terms.add(pairs)
            return
        for value, times in pairs:
            self.counts[value] = self.counts.get(value, 0) + times
        if self._most is not None and len(self.counts) > self._most:
            if self._as_text or self._has_words(list(self.counts)[: self._most + 1]):
                self.terms = self._count_terms()
            self.counts = None

    def _count_terms(self) -> TermCounts:
        assert self.counts is not None
        terms = TermCounts()
        terms.add(self.counts.items())
        return terms

    @staticmethod
    def _has_words(values: Iterable[str]) -> bool:
        lengths = [len(value.split()) for value in values]
        return sum(lengths) > WORDS * len(lengths)

    def kind(self) -> str:
        """Return the kind of the column."""
        if self.readings is not None and self.readings.are_possible:
            numbers = self.numbers()
            return "constant" if numbers is None else numbers.kind()
        if self._as_text:
            return "text"
        if self.counts is None:
            return "identifier" if self.terms is None else "text"
        present = self.rows - self.missing
        if len(self.counts) + (self.missing > 0) < 2:
            return "constant"
        if self._most is None or len(self.counts) <= present / 2:
            return "categorical"
        if self._has_words(self.counts):
            return "text"
        distinct = len(self.counts) == present >= FEW_ROWS
        return "identifier" if distinct else "categorical"

    @property
    def is_missing(self) -> bool:
        """Whether all strings represent missing values, also among numbers."""
        readings = self.readings
        return readings is not None and readings.are_possible and readings.profile() is None

    def numbers(self) -> NumberProfile | None:
        """Return the moments if all strings can be parsed, None otherwise."""
        return None if self.readings is None else self.readings.profile()

    def categories(self) -> list[str]:
        """Return the categories, sorted."""
        assert self.counts is not None
        return sorted(self.counts)

    def counted_terms(self) -> TermCounts:
        """Return the counts of terms."""
        return self._count_terms() if self.terms is None else self.terms


class VectorProfile:
    """Size of the vectors in a column, which is the same in all rows."""

    family = "vector"

    def __init__(self) -> None:
        self.rows = 0
        self.size = 0

    def update(self, column: Column, name: str) -> None:
        """Take more rows into account."""
        assert isinstance(column, Vectors)
        size = column.values.shape[1]
        if self.rows and len(column.values) and size != self.size:
            raise CellError(0, name, f"the vector has {size} values; expected {self.size}.")
        if len(column.values):
            self.size = size
        self.rows += len(column.values)

    def skip(self, rows: int) -> None:
        """Take rows without values into account."""
        raise ValueError("vectors are missing; expected one in every row.")

    def kind(self) -> str:
        """Return the kind of the column."""
        return "vector" if self.size else "constant"


Profile = NumberProfile | StringProfile | VectorProfile
