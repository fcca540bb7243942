"""So that ``python -m marginwise`` is the command."""

from marginwise.cli import main

main(prog_name="marginwise")
