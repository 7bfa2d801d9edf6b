"""``python -m syncscope`` is the ``syncscope`` command."""

from syncscope.cli import main

if __name__ == "__main__":
    main()
