"""One executor with three backends: this process, a pool of processes, tasks on Ray."""
