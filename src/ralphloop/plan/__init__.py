"""From words to stories: converting, asking an agent, looking at what it proposes, writing it."""
