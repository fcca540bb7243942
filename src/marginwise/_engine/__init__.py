"""The wrapper of the native model: its plan, its units and its state."""
