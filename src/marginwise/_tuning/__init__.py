"""How C and gamma are searched for."""
