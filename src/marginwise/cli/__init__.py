"""Command-line interface: thin commands over the library."""

from marginwise.cli import apply, label, labels, learn, manage, shell, simulate
from marginwise.cli.group import main as main
from marginwise.cli.images import guessed_shape as guessed_shape
from marginwise.cli.images import virtual as virtual

# Modules whose commands are in the group.
COMMANDS = (apply, label, labels, learn, manage, shell, simulate)
