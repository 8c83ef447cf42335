"""Operations of the HTTP API, for internal teams, dispute agents and operators."""
