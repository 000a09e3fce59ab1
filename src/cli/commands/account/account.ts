import { accountObject, type AccountObject } from '../../../wire/account.ts';
import type { View } from '../../client/request.ts';
import { formatFields, instant, whole } from '../../format.ts';

export const accountsPath = '/admin/v1/accounts';

export const newApiKeyView: View<AccountObject> = {
  schema: accountObject,
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
