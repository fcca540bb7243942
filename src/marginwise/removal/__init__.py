"""Verifiable removal of rows: receipts, append-only log and model files."""

from marginwise.removal.chain import LogEntry, RemovalLogError
from marginwise.removal.digest import model_digest
from marginwise.removal.files import RemovalWarning, remove_from_file
from marginwise.removal.log import RemovalLog
from marginwise.removal.receipt import Receipt, verify_receipt
from marginwise.removal.remove import remove

__all__ = [
    "LogEntry",
    "Receipt",
    "RemovalLog",
    "RemovalLogError",
    "RemovalWarning",
    "model_digest",
    "remove",
    "remove_from_file",
    "verify_receipt",
]
