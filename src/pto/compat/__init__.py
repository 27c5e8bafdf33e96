"""Other people's names for what we have: programs that were written for another stack run on ours."""
