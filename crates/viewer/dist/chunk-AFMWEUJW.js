import{E as t}from"./chunk-GBK2HMS5.js";function n(r){return t.value.query.get(r)??""}function u(r){let e=n(r);return/^\d+$/.test(e)?Number(e):null}export{n as a,u as b};
