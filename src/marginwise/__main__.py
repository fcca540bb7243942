"""Entry point of ``python -m marginwise``."""

from marginwise.cli import main

main(prog_name="marginwise")
