/** A call of an admin route. */
type Admin = (method: 'POST', path: string, body: object) => Promise<unknown>;

/** Gives a license another key. */
export async function rekey(admin: Admin, licenseKey: string, newKey: string): Promise<void> {
  await admin('POST', `/licenses/${licenseKey}/rekey`, { license_key: newKey });
}

/** Gives a license another buyer. */
export async function transfer(admin: Admin, licenseKey: string, buyerEmail: string): Promise<void> {
  await admin('POST', `/licenses/${licenseKey}/transfer`, { buyer_email: buyerEmail });
}
