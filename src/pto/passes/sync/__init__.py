"""The parts of sync insertion: what the program looks like, what conflicts, what is known, what is placed."""
