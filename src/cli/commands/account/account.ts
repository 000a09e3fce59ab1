import { z } from 'zod';
import type { View } from '../../client/request.ts';
import { formatFields, instant, whole } from '../../format.ts';

export const accountsPath = '/admin/v1/accounts';

export const account = z.object({
  account_id: z.string(),
  name: z.string(),
  // Only when it was just created.
  api_key: z.string().optional(),
  old_key_until: z.string().optional(),
});

/** Shows an account and its new API key. */
export const newApiKeyView: View<z.infer<typeof account>> = {
  schema: account,
  show({ account_id, name, api_key, old_key_until: until }) {
    const fields = {
      account: whole(account_id),
      name,
      'api key': api_key,
      'old one until': instant(until),
    };
    return [formatFields(fields), 'The API key is shown only this once.'];
  },
};
