"""Episodes for reinforcement learning: reset, step, reward, on any ToolSource."""
