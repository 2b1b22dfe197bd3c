"""What `gym env start` runs."""

from gta_bench_nemo_gym import GTAServer

if __name__ == "__main__":
    GTAServer.run_webserver()
