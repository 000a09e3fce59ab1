/* An app that sends JSON, and reads the whole purchase. It deactivates itself on everything that is not a success. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';

const { LICENSE_API = 'https://api.gumroad.com', PRODUCT_ID, LICENSE_FILE } = process.env;
const [key, count] = process.argv.slice(2);

async function check() {
  let answer;
  try {
    const response = await fetch(`${LICENSE_API}/v2/licenses/verify`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        product_id: PRODUCT_ID,
        license_key: key,
        increment_uses_count: count === 'count',
      }),
    });
    answer = await response.json().catch(() => ({ success: false }));
  } catch {
    return existsSync(LICENSE_FILE) ? 'KEEP' : 'TRY LATER';
  }
  const { success, purchase = {} } = answer;
  if (!success) return 'INVALID';
  if (purchase.refunded || purchase.chargebacked || (purchase.disputed && !purchase.dispute_won))
    return 'REFUNDED';
  const end = purchase.subscription_ended_at ?? purchase.subscription_cancelled_at;
  return end && Date.parse(end) <= Date.now() ? 'ENDED' : `VALID for ${purchase.email}`;
}

const conclusion = await check();
if (conclusion.startsWith('VALID')) writeFileSync(LICENSE_FILE, key);
else if (conclusion !== 'KEEP' && conclusion !== 'TRY LATER') rmSync(LICENSE_FILE, { force: true });
console.log(conclusion);
