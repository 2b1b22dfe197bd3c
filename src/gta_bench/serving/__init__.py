"""The tools as a server over HTTP and MCP, and its client."""
