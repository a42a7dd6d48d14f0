"""The six panes of a workspace: each draws one part of a snapshot."""
