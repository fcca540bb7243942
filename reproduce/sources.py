"""The catalogue of data files: content, public originals, licence, and digest of the content.

Digests are those of the files in use, most of which were made from copies of the originals. None of
the addresses below has been tested; `UNTRIED` states this in the listing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reproduce import converters
from reproduce.converters import Arrays, Records

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
GITHUB = "https://raw.githubusercontent.com"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
ESL = "https://hastie.su.domains/ElemStatLearn/datasets"
FIGSHARE = "https://ndownloader.figshare.com/files"
REVIEWS = "https://github.com/asreview/systematic-review-datasets"

NOT_STATED = "none stated"
UNTRIED = (
    "Addresses were recorded offline, and no original has been downloaded from them. Converters "
    "are tested on files written in the formats of the originals. If a conversion ends in another "
    "state than verified, the original differs from the copy that the file in use was made from, "
    "or the converter does not repeat its conversion."
)
UCI_LICENCE = "none stated with the file in use; see its page at UCI"


@dataclass(frozen=True)
class Original:
    """A public file: its name in the folder of originals, and its address.

    `sha256` is the hash of the file and `md5` that of its uncompressed content; both are empty if
    unknown. `page` is True if the address is a web page rather than the file.
    """

    name: str
    url: str
    sha256: str = ""
    md5: str = ""
    page: bool = False


@dataclass(frozen=True)
class Source:
    """A data file: its content and how it is made.

    `note` describes how the file differs from its original. `sampled` names arrays that depend on
    an unknown seed: a conversion draws them again, and `fixed` is the digest of the other arrays.
    """

    file: str
    content: str
    originals: tuple[Original, ...]
    licence: str
    convert: Callable[[Path], Arrays | Records]
    digest: str
    note: str = ""
    sampled: tuple[str, ...] = ()
    fixed: str = ""

    @property
    def name(self) -> str:
        """The file name without extensions."""
        return self.file.partition(".")[0]


def _at(base: str, *names: str) -> tuple[Original, ...]:
    return tuple(Original(name, f"{base}/{name}") for name in names)


def _review(name: str, content: str, licence: str, digest: str) -> Source:
    original = Original(f"{name}.csv", REVIEWS, page=True)
    return Source(
        f"reviews/{name}.jsonl.gz",
        content,
        (original,),
        licence,
        partial(converters.review, name=original.name),
        digest,
        f"The repository has one CSV file per review; store that of this review as {name}.csv.",
    )


REUTERS_SGML = _at(f"{UCI}/reuters21578-mld", "reuters21578.tar.gz")
REUTERS_LICENCE = "research purposes only (Reuters Ltd, Carnegie Group)"
COHEN = 'a "custom open license" of the authors'

SOURCES = (
    Source(
        "mnist.npz",
        "60,000 + 10,000 images of digits, 784 pixels as bytes",
        (
            Original(
                "train-images-idx3-ubyte.gz",
                f"{MNIST}/train-images-idx3-ubyte.gz",
                md5="6bbc9ace898e44ae57da46a324031adb",
            ),
            *_at(MNIST, "train-labels-idx1-ubyte.gz"),
            Original(
                "t10k-images-idx3-ubyte.gz",
                f"{MNIST}/t10k-images-idx3-ubyte.gz",
                md5="2646ac647ad5339dbf082846283269ea",
            ),
            *_at(MNIST, "t10k-labels-idx1-ubyte.gz"),
        ),
        NOT_STATED,
        converters.mnist,
        "43232741eb16b6b2b7bf0234196a7d6288ad75de574d8605153e140bcc70c4b1",
    ),
    Source(
        "a9a.npz",
        "Adult, 32,561 + 16,281 rows, 123 indicators",
        (
            Original("a9a", f"{LIBSVM}/binary/a9a", md5="fb3596510d780aaf76a06dc721d49662"),
            *_at(f"{LIBSVM}/binary", "a9a.t"),
        ),
        NOT_STATED,
        converters.a9a,
        "f06c85c77854fdda6202cdd05965fc671958d5adbf850651c86832bc22dc98e0",
    ),
    Source(
        "adult_raw.npz",
        "Adult, 32,561 + 16,281 rows, 6 numbers and 8 categories",
        _at(f"{UCI}/adult", "adult.data", "adult.test"),
        UCI_LICENCE,
        converters.adult,
        "00b473b0db19884336d2e19f38a85d64f622f246aa1326ab9a0728ab023616ee",
    ),
    Source(
        "usps.npz",
        "7,291 + 2,007 images of digits, 256 pixels from 0 to 1",
        _at(ESL, "zip.train.gz", "zip.test.gz"),
        NOT_STATED,
        converters.usps,
        "93024a5498da340d15d1fe850f4079b37fd827ef23adca2d16641b09674f7d89",
        "Pixels x of the original, from -1 to 1, are stored as (x + 1) / 2.",
    ),
    Source(
        "covtype_subset.npz",
        "forest cover types: 92,962 random rows, and the first 15,120; 54 columns",
        (
            Original(
                "covtype.data.gz",
                f"{FIGSHARE}/5976039",
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            ),
        ),
        UCI_LICENCE,
        converters.covtype,
        "e5abd0c2f7328ffb6e8b84f337ac8fb4adb19619727e7ace96732c5ebdc1e350",
        "The random rows in use are the test part of ramp-kits/covertype on GitHub, drawn with an "
        "unknown seed. A conversion draws as many rows with seed 0, so results on them differ.",
        ("X", "y", "in_first15120"),
        "8eb04b4ca71858d5ebebfaf7334754a8dcc17bc4a0597ea04cae052bcf7d3e71",
    ),
    Source(
        "reuters_moneyfx_lasvm.npz",
        "the LASVM paper's own Reuters file: 7,770 + 3,299 documents, 8,315 words",
        _at(
            f"{GITHUB}/X-DataInitiative/tick-datasets/master/binary/reuters",
            "reuters.trn.bz2",
            "reuters.tst.bz2",
        ),
        "BSD-3-Clause (the repository)",
        converters.reuters_moneyfx,
        "513c60ef604eed3ed157dd430abed9553b946a4727288d74607036a731ea6899",
        "A copy of money-fx.trn and money-fx.tst from the LASVM authors' lasvm-reuters.tar.bz2, "
        "where some entries of the training file occur twice.",
    ),
    Source(
        "reuters21578_r90_tfidf.npz",
        "Reuters-21578, ModApte split, 90 topics: tf-idf of 7,770 + 3,019 documents",
        REUTERS_SGML,
        REUTERS_LICENCE,
        converters.reuters_tfidf,
        "cb3748ac41f7558ca2f4c08797e5397b2afbbea2d1db762b024d6cb7cbdfd981",
        "reut2-000.sgm to reut2-021.sgm may be in the folder in place of the archive.",
    ),
    Source(
        "reuters21578_modapte_text.jsonl.gz",
        "Reuters-21578, ModApte split: text of 9,603 + 3,299 documents",
        REUTERS_SGML,
        REUTERS_LICENCE,
        converters.reuters_text,
        "94392642b8b5c734747e4738d5346848e2c5f8101bdbd08fac7ab0161a4d666c",
        "reut2-000.sgm to reut2-021.sgm may be in the folder in place of the archive.",
    ),
    Source(
        "banana.npz",
        "5,300 rows, 2 columns",
        _at(f"{GITHUB}/shogun-toolbox/shogun-data/master/toy", "banana.dat"),
        NOT_STATED,
        converters.banana,
        "0ec20e8e260111e9fdc663c1f1a7d2ceb8f216eb9223223660122a2bb6824492",
        "The pooled version of KEEL; the 100 partitions of Rätsch are not part of it.",
    ),
    Source(
        "waveform_uci.npz",
        "5,000 rows, 21 columns, 3 classes",
        _at(f"{GITHUB}/loremo/AdaBoost/master/data", "waveform.data"),
        UCI_LICENCE,
        converters.waveform,
        "1400ebed179f3fdf5aca1863481861e7870310df677f47e11e5f3752353a7339",
        "UCI's waveform.data has the same rows in another order. The order in use is that of the "
        "file on GitHub.",
    ),
    Source(
        "letter.npz",
        "16,000 + 4,000 letters, 16 columns",
        _at(f"{UCI}/letter-recognition", "letter-recognition.data"),
        UCI_LICENCE,
        converters.letter,
        "813c78322c0672a454199b558eab5716076e4cc23751329acb04f162279807a0",
    ),
    Source(
        "satimage.npz",
        "Statlog, 4,435 + 2,000 pixels of satellite images, 36 columns",
        _at(f"{UCI}/statlog/satimage", "sat.trn", "sat.tst"),
        UCI_LICENCE,
        converters.satimage,
        "d69814e59c123efdece6c8ae4352bce71e324b05240598be450434d0e167ac29",
    ),
    Source(
        "dna.npz",
        "Statlog, 2,000 + 1,186 splice junctions, 180 indicators",
        _at(f"{LIBSVM}/multiclass", "dna.scale", "dna.scale.t"),
        NOT_STATED,
        converters.dna,
        "8640e33408c6804a5ecd175d4716679eb1540b1d4148f1b852f64a0bdaa5bd08",
        "The file in use was exported from the R package mlbench; whether LIBSVM's rows have the "
        "same order has not been checked.",
    ),
    Source(
        "abalone.npz",
        "4,177 rows, 10 columns, label: rings",
        _at(f"{UCI}/abalone", "abalone.data"),
        UCI_LICENCE,
        converters.abalone,
        "2c45c03bc42361893eb08f1f3071f303b59e0e831c5cd7046f5df2188f02e431",
    ),
    Source(
        "kddcup99_10pct.npz",
        "KDD Cup 1999: 494,021 + 311,029 connections, 38 numbers and 3 categories",
        (
            Original(
                "kddcup.data_10_percent.gz",
                f"{FIGSHARE}/5976042",
                "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
            ),
            *_at("http://kdd.ics.uci.edu/databases/kddcup99", "corrected.gz"),
        ),
        NOT_STATED,
        converters.kddcup,
        "0616ab3912be70aef61fd7761e4b3e6ba523e17af63c7a7f65cf0c781d775045",
    ),
    Source(
        "sms_spam.jsonl.gz",
        "5,574 text messages, 747 of them spam",
        (
            Original(
                "SMSSpamCollection",
                f"{GITHUB}/dixitomkar1809/Text-Classification/"
                "a1c51df6a873b5d331d5dbf8c3bcaec86242cf17/data/SMSSpamCollection",
            ),
        ),
        NOT_STATED,
        converters.sms_spam,
        "1844ede223f23799b1b7fb40dd89750f2d82cf9f5795abef48623932652a9f7c",
        "In the file in use, 1,377 messages are in quotes and all have trailing tabs, as in a "
        "spreadsheet export. UCI's SMSSpamCollection, which has not been compared, may differ.",
    ),
    _review(
        "nagtegaal_2019",
        "2,019 records, 101 included",
        "CC0",
        "a640d45636ef65052297c8bf0f3faa663487d0af869972113f55f435d468d525",
    ),
    _review(
        "kitchenham_2010",
        "1,704 records, 45 included",
        "CC BY 4.0",
        "b5ba0f6c6fd8b322ab759a55c183a1ab19a3ce52ae3679febf2217c2b002b1c0",
    ),
    _review(
        "bannach_brown_2019",
        "1,993 records, 280 included",
        "CC BY 4.0",
        "7ffa5d0d809734b47f71373a662fef5b6d8171bde2eef88f88c0e54c448f68ed",
    ),
    _review(
        "cohen_2006_aceinhibitors",
        "2,544 records, 41 included",
        COHEN,
        "4b90219c514ac35aca3341359e2d1043b6112a7c6ff352e060ca53f71a98118a",
    ),
    _review(
        "cohen_2006_betablockers",
        "2,072 records, 42 included",
        COHEN,
        "707132841753eb480c0e9230f64fa5a915c6313550ece14a61d63e5f2560baaa",
    ),
)

BY_FILE = {source.file: source for source in SOURCES}
