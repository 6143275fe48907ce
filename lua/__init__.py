"""The state machine: one transition a file; `taskbatch.scripts` loads them."""
