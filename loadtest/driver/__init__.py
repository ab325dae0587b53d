"""Parts of loadtest/load.py. Reading order: scenario, schedule, prompts, wire, answer, connection, drive, figures, show."""
