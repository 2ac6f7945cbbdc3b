"""The monitor, fed by the journal and nothing else; only `screens` and `app` know Textual."""
