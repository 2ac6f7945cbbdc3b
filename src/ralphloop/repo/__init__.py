"""The user's repository: nothing here decides; it measures, reports, and does what a run owes."""
