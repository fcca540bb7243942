"""Attacks on the package, each with an invariant that must hold; `make stress` runs them all.

An attack is a module with a docstring that states its invariant, and

- ``TOTAL``, the number of cases at scale 1;
- ``BATCH``, how many cases share a process;
- ``LIMIT``, the seconds after which a case counts as a hang;
- ``run(case, rng, options)``, which returns an `Outcome`.

A case is a function of the seed and its number alone, so every failure has a command that
reproduces it.
"""
