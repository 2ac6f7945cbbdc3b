"""What a person sees: the live console, the monitor, the report.  It never imports the loop."""
