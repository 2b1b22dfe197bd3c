"""Works that try to talk a judge into a score, judges that let themselves be talked to, floors."""
