"""How far metrics go that run on a laptop: every real set rated response by response, recorded judges beside them."""
