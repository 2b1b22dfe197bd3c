"""The toolbox for others: HTTP and MCP, and the client of both."""
