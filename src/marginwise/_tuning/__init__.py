"""The search for C and gamma."""
