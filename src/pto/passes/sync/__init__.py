"""Parts of sync insertion: the model of the program, hazards, known orders, placement of flags."""
