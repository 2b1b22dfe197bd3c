"""Text similarity models, used by the metrics SummAcc, AnsAcc and AnsAcc+I."""
