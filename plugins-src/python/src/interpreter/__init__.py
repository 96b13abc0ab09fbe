"""An interpreter that lives as long as a conversation: runs code, tells what came of it, forgets.

Nothing in here knows the host; `app` puts it behind the plugin contract. What is checked here
serves the model, which is told what to do next: the walls are the host's.
"""
