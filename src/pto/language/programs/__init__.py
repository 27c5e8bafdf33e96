"""Programs that users compile and call: functions, their arguments, and folders of saved programs."""
