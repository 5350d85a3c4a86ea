"""The protocol of the processor: register, commit, call, settle. Read this page first.

A pure state machine: it owns the state of every record and partition, and does no I/O. The loop polls, writes, commits
and calls handlers, turns what comes of it into events, and executes the effects that `Engine.step` returns, in order.

The rules, in the order of a record's way, each with the file that keeps it. P1 is the guarantee that no record is lost
(it is settled, or registered, or uncommitted), P2 that a commit passes nothing else:

1. A record is registered when it is polled (eager), when it isn't settled some time later (deferred), or never (off).
   The first records of an assignment are registered at once in eager and deferred: a previous owner may have registered
   them without committing them (P1; `registering`).
2. A commit passes a record when it is registered or settled, and every earlier record of its partition is (P2;
   `partition`, `commits`). In off, it passes settled records only.
3. In eager, a call starts when its record is registered and every earlier one is registered or settled. In the warm-up,
   it starts when a confirmed commit covers it, so a record that kills its process is called at most twice (P1;
   `registering`).
4. A registered record gets its tombstone when its outcome is known, its wait record is acknowledged, and its dead
   letter or retry record too, if it has one (P1; `record`, `engine`).
5. When a partition is given up, a line divides its records: the last commit, which stops at the first record that
   hasn't started, or the highest commit that may be done. Below the line, all stay here. From it on, the next owner
   polls all. Of these, this process keeps those that are registered and have started, whose outcomes end their
   registrations, and those whose outcomes are being written; it drops the others and cancels their calls (P1;
   `rebalances`).

The way of one record in eager, from event to effect: `Polled` -> `Register`; `Registered` -> `Start`, and later
`Commit`; `CallsEnded` -> `WriteTombstones`, or `Publish` first and `WriteTombstones` at `Published`. `record` has the
table of all ways, `open_records` the records that are on their way, `results` how their calls end.

How much at once isn't decided here: `effects.FlowControl` says what `processor.flow` decides.
"""
