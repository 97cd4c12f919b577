include $(sort $(wildcard $(BR2_EXTERNAL_CONTIGO_PATH)/package/*/*.mk))
