"""Example jobs, one a file: copy what is close to what you need.

A task runs at least once. Nearly always that is exactly once; but when a machine dies in the middle, or
the network fails between a job's end and its acknowledgement, the task runs again. So a job must stand
being run twice. These five show five ways:

* `webhook`   the receiver decides: it gets the task's id as an idempotency key
* `report`    the same input makes the same output, which replaces the old one in one step
* `ledger`    the task's id is stored in the same transaction as its effect
* `command`   only commands that may run twice are on the allow-list
* `archive`   what is done already is recognised

Modules that take long to import are imported inside the function: a run that finds the queue empty
imports all jobs too, and calls none.
"""
