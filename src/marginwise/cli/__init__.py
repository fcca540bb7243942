"""The command `marginwise`: commands are thin over the library, and share their manners."""

from marginwise.cli import apply, learn, manage, shell, simulate
from marginwise.cli.group import main
from marginwise.cli.images import guessed_shape, virtual

COMMANDS = (apply, learn, manage, shell, simulate)  # modules whose commands are in the group
