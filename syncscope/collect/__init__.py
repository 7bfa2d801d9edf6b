"""Record a program that uses PyTorch. Nothing else in syncscope imports torch, and this only once the program has.

``collector`` follows one process, from the program's import of torch to the trace file. ``step_watch`` and ``timer``
find where a step ends, ``windows`` says what is recorded in which step, ``profiler`` runs torch.profiler there, and
``tracefile`` writes the result, under the name that ``naming`` and ``files`` give it. ``children`` has the processes
that the program starts recorded too. ``sites`` knows at which line the program waits or copies, ``hazards`` looks for
races. ``live`` reports waits while the program runs, without a recording. ``run`` runs a user's script.
"""
