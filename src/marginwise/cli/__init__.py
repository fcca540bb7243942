"""The command `marginwise`: commands are thin over the library, and share their manners."""

from marginwise.cli import shell
from marginwise.cli.group import main
from marginwise.cli.images import guessed_shape, virtual

COMMANDS = (shell,)  # modules whose commands are part of the group
