collect_ignore = ["tree"]  # programs that tests run elsewhere
