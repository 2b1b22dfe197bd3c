"""How alike two texts are: the models behind SummAcc, AnsAcc and AnsAcc+I."""
