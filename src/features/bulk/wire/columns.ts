/** Words in the name of a column that says whether a key or a coupon is valid. */
const stateWords: ReadonlySet<string> = new Set(
  `active inactive deactivated enabled disabled valid invalid status state
  refund refunded refunds chargeback chargebacked dispute disputed fraud
  revoked suspended blocked banned blacklisted locked paused void voided deleted trashed terminated archived
  cancelled canceled cancellation expire expires expired expiry expiration end ends ended until`.split(/\s+/),
);

/** Parts of words that say the same, also in names such as `isdisabled`, which databases write in lower case. */
const stateParts =
  /refund|revok|expir|status|cancel|chargeback|dispute|suspend|disable|enabled|active|deactivat|terminat|valid(?!at)|until/;

/** The words in the name of a column, in lower case: of `Expires at`, `expires_at` and `expiresAt` the same. */
export function columnWords(name: string): string[] {
  const spaced = name.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2');
  return spaced.toLowerCase().split(/[^\p{L}\d]+/u);
}

/** Whether the name of a column says that a key or a coupon may not be valid: `status`, `Refunded?`, `expires_at`. */
export function looksLikeState(name: string): boolean {
  return columnWords(name).some((word) => stateWords.has(word) || stateParts.test(word));
}

/** The columns of a header with a name that is not known. */
export function ignoredColumns(header: readonly string[], known: ReadonlySet<string>): string[] {
  return header.filter((name) => name !== '' && !known.has(name));
}
