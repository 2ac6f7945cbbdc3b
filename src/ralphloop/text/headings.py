"""How people head a part of a story, in the languages that plans are written in."""

CRITERIA_HEADINGS = frozenset(
    {
        "acceptance criteria",
        "akzeptanzkriterien",
        "abnahmekriterien",
        "critères d'acceptation",
        "critères d’acceptation",
        "criterios de aceptación",
        "critérios de aceitação",
        "critérios de aceite",
        "criteri di accettazione",
        "acceptatiecriteria",
        "kryteria akceptacji",
        "критерии приёмки",
        "критерии приемки",
        "受け入れ基準",
        "受入基準",
        "验收标准",
        "驗收標準",
        "인수 조건",
    }
)
