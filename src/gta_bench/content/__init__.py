"""What files hold: each kind read once, for the Read* tools and for a judge's evidence."""
