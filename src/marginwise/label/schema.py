"""The schema of a label store: the statements of each migration, in order."""

from __future__ import annotations

APPLICATION_ID = 0x4D774C62  # "MwLb"; file(1) and other programs can recognise it

_M001_EVENTS = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE event (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,   -- made by the client for each action
      kind TEXT NOT NULL CHECK (kind IN ('label', 'skip', 'undo', 'flag', 'note')),
      item TEXT NOT NULL,         -- id of the item; for undo, of the event that is taken back
      label TEXT,                 -- kind label
      text TEXT,                  -- kind note: the note; kind flag: 'on' or 'off'
      undone INTEGER,             -- kind undo: seq of the event that is taken back
      annotator TEXT NOT NULL,
      time REAL NOT NULL,         -- seconds since 1970
      duration REAL,              -- seconds that the item was on screen
      model_version INTEGER,      -- answers that the model had learned when the item was chosen
      score TEXT,                 -- JSON: decision values when the item was chosen
      purpose TEXT,               -- why the item was asked about
      pending TEXT                -- JSON list: items given to the annotator and not yet answered
    )
    """,
    "CREATE INDEX event_annotator ON event (annotator, seq)",
    "CREATE UNIQUE INDEX event_undone ON event (undone) WHERE undone IS NOT NULL",
    """
    CREATE TRIGGER event_update BEFORE UPDATE ON event BEGIN
      SELECT RAISE(ABORT, 'events are never changed; append an undo');
    END
    """,
    """
    CREATE TRIGGER event_delete BEFORE DELETE ON event BEGIN
      SELECT RAISE(ABORT, 'events are never deleted; append an undo');
    END
    """,
    # INSERT OR REPLACE deletes rows without firing the trigger above.
    """
    CREATE TRIGGER event_replace BEFORE INSERT ON event
    WHEN EXISTS (SELECT 1 FROM event WHERE key = NEW.key OR seq = NEW.seq
                 OR (undone IS NOT NULL AND undone = NEW.undone)) BEGIN
      SELECT RAISE(ABORT, 'events are never replaced; append an undo');
    END
    """,
    # The effective answers, one per item and annotator, for other programs that read the file.
    """
    CREATE VIEW answer AS
      SELECT item, annotator, kind, label, time, duration, purpose, seq FROM event
      WHERE seq IN (
        SELECT max(seq) FROM event AS e
        WHERE kind IN ('label', 'skip') AND NOT EXISTS (SELECT 1 FROM event WHERE undone = e.seq)
        GROUP BY item, annotator
      )
    """,
)

# The questions of each annotator, which other annotators are not asked. They change with every
# question and are of no use later, so they are not events.
_M002_ASSIGNED = (
    """
    CREATE TABLE assigned (
      annotator TEXT PRIMARY KEY,
      questions TEXT NOT NULL,    -- JSON list of items and purposes, as in event.pending
      time REAL NOT NULL          -- seconds since 1970
    )
    """,
)

MIGRATIONS = (_M001_EVENTS, _M002_ASSIGNED)  # from version 0 to 1, from 1 to 2, and so on
VERSION = len(MIGRATIONS)
