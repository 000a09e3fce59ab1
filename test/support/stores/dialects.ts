import type { DialectName } from '../../../src/domain/header-names.ts';
import { specification as sentAsSpecified, type Dialect as Sent } from '../../../src/http/dialects.ts';
import { sent as sentByPayhip } from '../../../src/stores/payhip/http.ts';
import { received as receivedFromPayhip } from '../../../src/stores/payhip/upstream.ts';
import {
  specification as receivedAsSpecified,
  type Dialect as Received,
} from '../../../src/upstream/dialects.ts';

/** What is sent under `/api`, by the names of the setting `listen.dialect`. */
export const dialects: Readonly<Record<DialectName, Sent>> = {
  specification: sentAsSpecified,
  payhip: sentByPayhip,
};

/** How responses of an upstream are understood, by the names of the setting `upstream.dialect`. */
export const received: Readonly<Record<DialectName, Received>> = {
  specification: receivedAsSpecified,
  payhip: receivedFromPayhip,
};
