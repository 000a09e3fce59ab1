import { polarPrograms } from '../../support/reference/existing-programs.ts';
import { keys, openPolar, organizationId, startPolar } from '../../support/stores/polar.ts';
import { testUses } from '../../support/stores/store-programs.ts';

testUses(
  {
    name: 'Polar',
    programs: polarPrograms,
    environment: { ORGANIZATION_ID: organizationId },
    keys,
    good: ['good', 'running'],
    concluded: { good: /: VALID/, revoked: /: INVALID/, expired: /: INVALID/ },
    open: openPolar,
    start: startPolar,
  },
  { by: 2, usesAt: (store) => store.license(keys.good).usage },
);
