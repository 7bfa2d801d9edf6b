"""``syncscope`` as its users start it, on a machine where the driver shows a GPU that nobody needs."""

from syncscope.collect import gpu

gpu.gpu_count = lambda: 1

if __name__ == "__main__":
    from syncscope.__main__ import main

    main()
