/** Words in the name of a column that says whether a key or a coupon is valid. */
const stateWords: ReadonlySet<string> = new Set(
  `active inactive deactivated enabled disabled valid invalid status state
  refund refunded refunds chargeback chargebacked dispute disputed fraud
  revoked suspended blocked banned blacklisted locked paused void voided deleted trashed terminated archived
  cancelled canceled cancellation expire expires expired expiry expiration end ends ended until
  aktiv aktiviert inaktiv deaktiviert zustand ende`.split(/\s+/),
);

/** Parts of words that say the same, also in names such as `isdisabled`, which databases write in lower case. */
const stateParts =
  /refund|revok|expir|status|cancel|chargeback|dispute|suspend|disable|enabled|active|deactivat|terminat|valid(?!at)|until|gültig|gesperr|storn|erstatt|widerruf|widerrief|gekündigt|ablauf|abgelaufen/;

/** The words in the name of a column, in lower case: of `Expires at`, `expires_at` and `expiresAt` the same. */
export function columnWords(name: string): string[] {
  const spaced = name.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2');
  return spaced.toLowerCase().split(/[^\p{L}\d]+/u);
}

/** The name of a column in lower case, its words joined by `_`: of `License Key Enabled?`, `license_key_enabled`. */
export function normalizedName(name: string): string {
  return columnWords(name)
    .filter((word) => word !== '')
    .join('_');
}

/** Whether the name of a column says that a key or a coupon may not be valid: `status`, `Refunded?`, `expires_at`. */
export function looksLikeState(name: string): boolean {
  return (
    looksLikeEnd(name) || columnWords(name).some((word) => stateWords.has(word) || stateParts.test(word))
  );
}

/** Names of columns with the day after which a key or a coupon is not valid: `valid_until`, `Expiry date`, `Ablaufdatum`. */
const endNames = [
  /expir(?:es|y|ation|ed ?(?:at|on|date))/,
  /(?:valid|active|paid|licen[cs]e|subscription) ?until|valid ?(?:to|thru|through)/,
  /(?:^| )(?:until|ends?)(?: (?:at|on))?$|(?:^| )end ?date/,
  /(?:gültig|gueltig|aktiv|bezahlt|laufzeit) ?bis|ablauf|abgelaufen am|(?:läuft|laeuft) ab/,
  /(?:^| |laufzeit|vertrags|lizenz|abo)ende(?: am)?$|(?:^| )enddatum/,
];

export function looksLikeEnd(name: string): boolean {
  const words = normalizedName(name).replaceAll('_', ' ');
  return endNames.some((end) => end.test(words));
}

/**
 * How columns that look like states could be mapped, as in `--map`; `columns`: those of the import that can still be
 * mapped. Empty: none of them fits.
 */
export function exampleMap(states: readonly string[], columns: readonly string[]): string {
  const as = ['expires_at', 'end_date'].find((name) => columns.includes(name));
  const ends = as === undefined ? [] : states.filter(looksLikeEnd).map((name) => `${as}=${name}`);
  const others = columns.includes('enabled') ? states.filter((name) => !looksLikeEnd(name)) : [];
  const maps = [...ends.slice(0, 1), ...others.map((name) => `enabled=${name}:active|inactive`)];
  return maps.slice(0, 2).join(',');
}
