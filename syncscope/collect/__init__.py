"""Record a program that uses PyTorch. Nothing else in syncscope imports torch, and this only once the program has.

``collector`` follows one process, from the program's import of torch to the trace files. ``phases`` and ``timer`` find
what the program does and where its steps end, ``counting`` and ``count`` count the waits of the whole run, ``watch``
says meanwhile what they see. ``schedule`` chooses the phases that get windows, ``windows`` says what is recorded in
which step, and ``profiler`` runs torch.profiler there. ``recordings`` and ``tracefile`` write the result, under the
names that ``naming`` and ``files`` give it. ``children`` has the processes that the program starts recorded too.
``sites`` knows at which line the program waits or copies, ``hazards`` looks for races. ``live`` reports waits while the
program runs, without a recording. ``run`` runs a user's script.
"""
